"""One of several goes on at a time, from one write to the next, in an order that is chosen: all orders, or some.

Everybody has a thread, which waits before each of its writes. So the code is the real one, and nothing in it
knows that it is held.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

Choose = Callable[[Sequence[str]], str]
"""Who goes on, of those who can; they come in one order always."""

# What a thread may take from one of its writes to the next, in seconds: then somebody holds a lock while he waits.
_LONGEST = 60.0
_MOST = 10_000


class Turns:
    """`steps` is who went on, and before what. Threads that nobody plays in are not held."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self._actors: dict[str, _Actor] = {}
        self._able: list[str] = []
        self._moments: Mapping[str, Callable[[], None]] = {}
        self._choose: Choose | None = None
        self._noticed_by: Callable[[str], bool] = bool
        self._ended = threading.Semaphore(0)
        self._broken: BaseException | None = None

    def play(
        self,
        acts: Mapping[str, Callable[[], object]],
        choose: Choose,
        moments: Mapping[str, Callable[[], None]] | None = None,
        noticed_by: Callable[[str], bool] = lambda step: True,
    ) -> None:
        """Everybody to the end of what he does; raises what he raises.

        `moments` happen as a whole, once each, whenever they are chosen; with `noticed_by` only right before a step
        that can tell. Any other order of theirs is the same as one of those.
        """
        self.steps, self._moments, self._choose, self._noticed_by = [], dict(moments or {}), None, noticed_by
        for name, act in acts.items():
            self._actor(name).begin(act)
            self._wait()
        self._able = [*(name for name in acts if self._actors[name].act), *self._moments]
        self._choose = choose
        self._pass_on(None)
        self._wait()

    def before(self, what: str) -> None:
        """Whoever comes here waits until it is his turn."""
        actor = next((each for each in self._actors.values() if each.is_here), None)
        if actor is not None:
            actor.coming = what
            self._pass_on(actor)

    def close(self) -> None:
        for actor in self._actors.values():
            actor.leave()

    def _actor(self, name: str) -> _Actor:
        if name not in self._actors:
            self._actors[name] = _Actor(name, self._done)
        return self._actors[name]

    def _pass_on(self, actor: _Actor | None) -> None:
        """Let the next one go on, and wait for the next turn of `actor`, when it wants one."""
        following = self._following()
        if following is None:
            self._ended.release()
        elif following is actor:
            return
        else:
            following.go.release()
        if actor is not None:
            actor.go.acquire()

    def _following(self) -> _Actor | None:
        """None when everybody has come to an end, or to his first step, or to something wrong."""
        if self._choose is None:
            return None
        try:
            while self._able:
                name = self._choose(self._can())
                assert len(self.steps) < _MOST, "they never come to an end"
                if (moment := self._moments.get(name)) is None:
                    self.steps.append(f"{name}: {self._actors[name].coming}")
                    return self._actors[name]
                self.steps.append(name)
                self._able.remove(name)
                moment()
        except BaseException as error:
            # It must not be raised in the middle of the code that is played, which may take it for its own.
            self._broken = error
        return None

    def _can(self) -> list[str]:
        """Those whose turn it may be, in one order always."""
        noticing = [each for each in self._able if each not in self._moments and self._notices(each)]
        if self.steps and self.steps[-1] in self._moments:
            return noticing or self._able
        return self._able if noticing else [each for each in self._able if each not in self._moments] or self._able

    def _notices(self, name: str) -> bool:
        return self._noticed_by(self._actors[name].coming)

    def _done(self, actor: _Actor) -> None:
        if actor.name in self._able:
            self._able.remove(actor.name)
        if actor.error is not None:
            self._broken, self._choose = actor.error, None
        self._pass_on(None)

    def _wait(self) -> None:
        assert self._ended.acquire(timeout=_LONGEST), f"somebody holds what another waits for: {self.steps}"
        if self._broken is not None:
            raise self._broken


class _Actor:
    """A thread that does one act after the other."""

    def __init__(self, name: str, done: Callable[[_Actor], None]) -> None:
        self.name, self._done = name, done
        self.act: Callable[[], object] | None = None
        self.coming = ""
        self.error: BaseException | None = None
        self.go = threading.Lock()
        self.go.acquire()
        self._thread = threading.Thread(target=self._perform, daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        return threading.current_thread() is self._thread

    def begin(self, act: Callable[[], object]) -> None:
        self.act = act
        self.go.release()

    def leave(self) -> None:
        # Whoever was held when something went wrong stays there.
        if self.act is None:
            self.go.release()
            self._thread.join()

    def _perform(self) -> None:
        while True:
            self.go.acquire()
            if self.act is None:
                return
            try:
                self.act()
            except BaseException as error:
                self.error = error
            self.act = None
            self._done(self)


def every(first: str | None = None) -> Iterator[Choose]:
    """All orders there are, one for each play, or those in which somebody begins.

    The last choice that had another one is made anew.
    """
    left: list[list[str]] = [[first]] if first else []
    while True:
        made = 0

        def choose(able: Sequence[str]) -> str:
            nonlocal made
            if made == len(left):
                left.append(list(able))
            assert set(left[made]) <= set(able), "the same choices had another outcome before"
            made += 1
            return left[made - 1][-1]

        yield choose
        assert made == len(left)
        while left and len(left[-1]) == 1:
            left.pop()
        if not left:
            return
        left[-1].pop()


def some(seed: int) -> Choose:
    """One order, in which whoever goes on does so for a while: otherwise nobody ever gets far ahead."""
    chance = random.Random(seed)  # an order to try, no secret
    last = ""

    def choose(able: Sequence[str]) -> str:
        nonlocal last
        if last not in able or chance.random() < 0.6:
            last = chance.choice(able)
        return last

    return choose
