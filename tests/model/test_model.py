"""The model and the real system, driven by the same random operations: each reply and all of the state are compared.

`MODEL_OPERATIONS` says how many operations, `MODEL_SEED` which; the seed is printed. With `MODEL_QUICK` what is found
is not made smaller first.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from tests import memory
from tests.contract.queues import FrozenClock
from tests.contract.remotes import bare
from tests.model.books import Time
from tests.model.real import RealSite
from tests.model.runs import Refs, Refused, Run
from tests.model.world import Site

from hermes_workflows.errors import HermesError
from hermes_workflows.runner.slices import Decider, SliceLimits

OPERATIONS = int(os.environ.get("MODEL_OPERATIONS", "2000"))
# `make test` does the same operations each time; what nobody has seen yet is for `make soak` to find.
SEED = int(os.environ.get("MODEL_SEED", random.SystemRandom().randrange(1_000_000) if OPERATIONS > 2000 else 1))
# Operations on one world, and worlds of one seed: more would only make what is found longer.
STEPS, WORLDS = 40, 20
PHASES = (Phase.generate,) if os.environ.get("MODEL_QUICK") else (Phase.generate, Phase.shrink)
EXPECTED = (
    *("start", "claim", "heartbeat", "expire", "complete", "fail", "retry", "ask", "answer", "answer-twice"),
    *("answer-late", "cancel", "fork", "fork-fetched", "rebuild", "lose", "clone", "push", "fetch", "maintenance"),
    *("seal", "crash", "sweep", "stop", "late-result", "poison"),
)
OWNERS = {"ada": "here", "bob": "here", "cyd": "there"}
PLANS = st.lists(
    st.lists(st.sampled_from(["once", "twice", "ask", "soon"]), min_size=1, max_size=3), min_size=1, max_size=3
)
RARELY = st.sampled_from([False] * 9 + [True])
done: Counter[str] = Counter()


class Machine(RuleBasedStateMachine):
    """Every rule advances the clock by a second, does one thing in both worlds, and compares them."""

    @initialize(bursts=st.booleans())
    def open(self, bursts: bool) -> None:
        self.folder = Path(mkdtemp(prefix="hermes-model-", dir=memory.folder()))
        self.clock = FrozenClock()
        self.time = Time(self.clock.wall, self.clock.seconds)
        self.decider = Decider(SliceLimits(dead_man=None))
        place = bare(self.folder)
        hub = Refs()
        plans: dict[str, Any] = {}
        self.model = {name: Site(name, self.time, hub, plans) for name in ("here", "there")}
        self.real = {
            name: RealSite(self.folder / name, self.clock, place, self.decider, bursts=bursts) for name in self.model
        }
        for owner, site in OWNERS.items():
            self.model[site].crash(owner)
            self.real[site].crash(owner)
        self.numbers = 0

    def teardown(self) -> None:
        if hasattr(self, "real"):
            for site in self.real.values():
                site.close()
            self.decider.close()
            shutil.rmtree(self.folder)

    # -- people ----------------------------------------------------------------------------------------------

    @rule(data=st.data(), plan=PLANS, site=st.sampled_from(["here", "here", "there"]))
    def start(self, data: st.DataObject, plan: Any, site: str) -> None:
        known = sorted(self.model[site].runs)
        again = data.draw(st.sampled_from([None, None, None, *known])) if known else None
        run_id = again or self._name(site)
        if again and data.draw(st.booleans()):
            plan = self.model[site].runs[again].plan
        self._do(site, "start", lambda each: each.start(run_id, plan))

    @precondition(lambda self: self._questions())
    @rule(data=st.data(), by=st.sampled_from(["ana", "ben"]), payload=st.sampled_from(["yes", "no"]))
    def answer(self, data: st.DataObject, by: str, payload: str) -> None:
        site, run_id, key = data.draw(st.sampled_from(self._questions()))
        first = self.model[site].runs[run_id].paths.get(f"reviews/{key}/response.json")
        label = "answer" if first is None else "answer-twice" if first.status == "completed" else "answer-late"
        self._do(site, label, lambda each: each.answer(run_id, key, payload, by), "AlreadyAnswered", "Conflict")

    @precondition(lambda self: self._expired())
    @rule(data=st.data(), by=st.sampled_from(["ana", "ben"]))
    def answer_late(self, data: st.DataObject, by: str) -> None:
        site, run_id, key = data.draw(st.sampled_from(self._expired()))
        self._do(site, "answer-late", lambda each: each.answer(run_id, key, "yes", by), "AlreadyAnswered", "Conflict")

    @precondition(lambda self: self._runs(Run.open_questions))
    @rule(data=st.data(), by=st.sampled_from(["ana", "ben"]), payload=st.sampled_from(["yes", "no"]))
    def answer_open(self, data: st.DataObject, by: str, payload: str) -> None:
        site, run_id = data.draw(st.sampled_from(self._runs(Run.open_questions)))
        key = data.draw(st.sampled_from(self.model[site].runs[run_id].open_questions()))
        self._do(site, "answer", lambda each: each.answer(run_id, key, payload, by))

    @precondition(lambda self: self._runs())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        site, run_id = data.draw(st.sampled_from(self._runs()))
        self._do(site, "cancel", lambda each: each.cancel(run_id))

    @precondition(lambda self: self._runs())
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        site, run_id = data.draw(st.sampled_from(self._runs()))
        keys = sorted(
            {
                each.path.split("/")[1].split(".")[0]
                for each in self.model[site].runs[run_id].receipts[1:]
                if each.path.startswith(("steps/", "reviews/"))
            }
        )
        key = data.draw(st.sampled_from([None, *keys]))
        name = self._name(site)
        self._do(site, "fork", lambda each: each.fork(run_id, key, name))

    @rule(data=st.data())
    def fork_fetched(self, data: st.DataObject) -> None:
        if not any(site.remote.all() for site in self.model.values()):
            for name in self.model:
                self._do(name, "push", lambda each: each.push())
                self._do(name, "fetch", lambda each: each.fetch())
            return
        site = data.draw(st.sampled_from([name for name, site in self.model.items() if site.remote.all()]))
        run_id, name = data.draw(st.sampled_from(sorted(self.model[site].remote.all()))), self._name(site)
        self._do(site, "fork-fetched", lambda each: each.fork(f"origin/{run_id}", None, name))

    @precondition(lambda self: self._ended_or_stuck())
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        # Others are stuck when their runners are ill: a table of states, which has its own tests.
        site, run_id = data.draw(st.sampled_from(self._ended_or_stuck()))
        name = self._name(site)
        self._do(site, "retry", lambda each: each.retry(run_id, name))

    # -- runners ---------------------------------------------------------------------------------------------

    @rule(owner=st.sampled_from(sorted(OWNERS)), limit=st.sampled_from([1, 2, 50]), dies=RARELY)
    def claim(self, owner: str, limit: int, dies: bool) -> None:
        self._claim(owner, limit, dies)

    @rule(owner=st.sampled_from(sorted(OWNERS)))
    def claim_all(self, owner: str) -> None:
        self._claim(owner, 50, dies=False)

    def _claim(self, owner: str, limit: int, dies: bool) -> None:
        site = OWNERS[owner]
        done["operations"] += 1
        real, model = self.real[site], self.model[site]
        self._tick()
        before = self._counts()
        taken = real.claim(owner, limit, dies=dies)
        expired = [name for name in taken if name in model.rows.rows and model.rows.rows[name].losses()]
        model.claim(owner, limit, taken, dies=dies)
        after = self._counts()
        done.update({"claim": bool(taken), "expire": bool(expired), "crash": dies})
        done.update({name: after[name] > before[name] for name in after})
        self._compare()

    @rule(site=st.sampled_from(["here", "here", "there"]), plan=PLANS)
    def start_and_claim(self, site: str, plan: Any) -> None:
        name = self._name(site)
        self._do(site, "start", lambda each: each.start(name, plan))
        for owner in ("ada", "ada") if site == "here" else ("cyd", "cyd"):
            self._claim(owner, 50, dies=False)

    @precondition(lambda self: self.model["here"].runs)
    @rule()
    def neglect(self) -> None:
        """Two owners take everything in turn, and neither shows a sign of life."""
        for owner in ("ada", "bob", "ada", "bob"):
            self._claim(owner, 50, dies=False)
            self._tick(31.0)

    @precondition(lambda self: self._hands())
    @rule(data=st.data())
    def cancel_at_work(self, data: st.DataObject) -> None:
        owner, (run_id, _) = data.draw(st.sampled_from(self._hands()))
        self._do(OWNERS[owner], "cancel", lambda each: each.cancel(run_id))
        self._claim(owner, 50, dies=False)

    @precondition(lambda self: self._hands())
    @rule(data=st.data(), status=st.sampled_from(["completed", "failed"]))
    def bring(self, data: st.DataObject, status: str) -> None:
        self._hand_over(data, status, decide=True, dies=False)

    @precondition(lambda self: self._hands())
    @rule(
        data=st.data(), status=st.sampled_from(["completed", "completed", "failed"]), decide=st.booleans(), dies=RARELY
    )
    def hand_over(self, data: st.DataObject, status: str, decide: bool, dies: bool) -> None:
        self._hand_over(data, status, decide=decide, dies=dies)

    def _hand_over(self, data: st.DataObject, status: str, *, decide: bool, dies: bool) -> None:
        owner, work = data.draw(st.sampled_from(self._hands()))
        self.numbers += 1
        output, label = f"{owner} {self.numbers}", {"completed": "complete", "failed": "fail"}[status]
        site = self.model[OWNERS[owner]]
        hand = next(each for each in site.owners[owner].hands.values() if each.lease.name == work)
        row = site.rows.rows.get(work)
        done["late-result"] += row is None or row.token != hand.lease.token
        done["stop"] += hand.stopped
        self._do(
            OWNERS[owner], label, lambda each: each.hand_over(owner, work, status, output, decide=decide, dies=dies)
        )

    @rule(owner=st.sampled_from(sorted(OWNERS)), what=st.sampled_from(["heartbeat", "heartbeat", "sweep", "crash"]))
    def live(self, owner: str, what: str) -> None:
        self._do(OWNERS[owner], what, lambda each: getattr(each, what)(owner))

    @rule(seconds=st.sampled_from([5.0, 11.0, 31.0, 31.0, 101.0]))
    def wait(self, seconds: float) -> None:
        self._tick(seconds)
        self._compare()

    # -- upkeep ----------------------------------------------------------------------------------------------

    @rule(site=st.sampled_from(["here", "there"]), what=st.sampled_from(["look", "rebuild", "lose", "seal"]))
    def keep(self, site: str, what: str) -> None:
        self._do(site, what, lambda each: getattr(each, what)())

    @rule(
        site=st.sampled_from(["here", "there"]),
        what=st.sampled_from(["push", "push", "fetch", "fetch", "clone", "maintenance"]),
    )
    def exchange(self, site: str, what: str) -> None:
        if what == "maintenance":
            self._do(site, what, lambda each: each.seal() if isinstance(each, Site) else each.maintain())
        else:
            self._do(site, what, lambda each: getattr(each, what)())

    # -- inside ----------------------------------------------------------------------------------------------

    def _do(self, site: str, label: str, act: Callable[[Any], Any], *refusals: str) -> None:
        done["operations"] += 1
        self._tick()
        told, foretold = _reply(act, self.real[site]), _reply(act, self.model[site])
        assert told == foretold, f"{label}: the system says {told!r}, the model {foretold!r}"
        refused = isinstance(told, Refused)
        done[label] += not refused or str(told) in refusals
        self._compare()

    def _tick(self, seconds: float = 1.0) -> None:
        self.clock.advance(seconds)
        self.time.now, self.time.elapsed = self.clock.wall, self.clock.seconds

    def _compare(self) -> None:
        for name, model in self.model.items():
            seen, foretold = self.real[name].state(), model.state()
            for part, value in foretold.items():
                if seen[part] != value:
                    raise AssertionError(f"{name}: {part}\n  {_difference(seen[part], value)}")

    def _counts(self) -> dict[str, int]:
        runs = [run for site in self.model.values() for run in site.runs.values()]
        return {
            "ask": sum(each.status == "requested" for run in runs for each in run.receipts),
            "poison": sum(len(site.rows.stuck) for site in self.model.values()),
        }

    def _name(self, site: str) -> str:
        self.numbers += 1
        return f"{site}-{self.numbers}"

    def _runs(self, wanted: Callable[[Run], Any] = lambda run: True) -> list[tuple[str, str]]:
        return [(name, run_id) for name, site in self.model.items() for run_id, run in site.runs.items() if wanted(run)]

    def _ended_or_stuck(self) -> list[tuple[str, str]]:
        stuck = [(name, run_id) for name, site in self.model.items() for run_id in sorted(site.rows.stuck)]
        return [*self._runs(lambda run: run.ended), *stuck]

    def _questions(self) -> list[tuple[str, str, str]]:
        return [
            (name, run_id, each.path.split("/")[1])
            for name, run_id in self._runs()
            for each in self.model[name].runs[run_id].receipts
            if each.status == "requested"
        ]

    def _expired(self) -> list[tuple[str, str, str]]:
        """The questions that nobody answered in time."""
        return [
            (site, run_id, key)
            for site, run_id, key in self._questions()
            if (first := self.model[site].runs[run_id].paths.get(f"reviews/{key}/response.json"))
            and first.status == "expired"
        ]

    def _hands(self) -> list[tuple[str, tuple[str, str]]]:
        return [
            (name, hand.lease.name)
            for name, site in OWNERS.items()
            for hand in self.model[site].owners[name].hands.values()
        ]


class _Refused(Refused):
    """Equal to another refusal by the same name."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refused) and str(self) == str(other)

    __hash__ = Refused.__hash__


def _reply(act: Callable[[Any], Any], world: Any) -> Any:
    try:
        return act(world)
    except HermesError as error:
        return _Refused(type(error).__name__)
    except Refused as refused:
        return _Refused(str(refused))


def _difference(seen: Any, foretold: Any) -> str:
    if not isinstance(seen, dict):
        return f"the system has {seen!r}, the model {foretold!r}"
    names = [name for name in {**seen, **foretold} if seen.get(name) != foretold.get(name)]
    return "\n  ".join(f"{name}: the system has {seen.get(name)}, the model {foretold.get(name)}" for name in names)


def test_model_and_system_never_differ() -> None:
    """A run in which an operation has never succeeded says nothing: then it goes on for a while."""
    done.clear()
    print(f"MODEL_SEED={SEED} MODEL_OPERATIONS={OPERATIONS}")
    number = 0
    while done["operations"] < OPERATIONS or (_missing() and done["operations"] < 5 * OPERATIONS):
        left = max(OPERATIONS - done["operations"], STEPS)
        options = settings(
            max_examples=min(-(-left // STEPS), WORLDS),
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(seed(SEED + number)(Machine), settings=options)
        number += 1
    print(dict(sorted(done.items())))
    assert not _missing(), f"never succeeded in {done['operations']} operations of seed {SEED}: {_missing()}"


def _missing() -> list[str]:
    return [name for name in EXPECTED if not done[name]]
