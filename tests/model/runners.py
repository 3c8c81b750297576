"""What runners do in a workspace: claim rows, let bodies decide, execute calls, record what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tests.model.body import ANSWER_SECONDS, ATTEMPTS, RETRY_SECONDS, Call, Thought, calls_of, think
from tests.model.books import Books
from tests.model.owners import Body, Hand, Owner
from tests.model.rows import Change, Lease, Name

END, EXPIRY = "$end", "$expiry/"
GRACE_SECONDS = 10.0
MAX_LOSSES = 3
PUT_OFF_SECONDS = 0.1


class Runners(Books):
    """A workspace at which runners work."""

    def claim(self, name: str, limit: int, taken: Sequence[Name], *, dies: bool = False) -> None:
        """A turn of a runner: what it decides, and what it begins to execute."""
        owner, out = self.owners[name], Change()
        leases = self.rows.claim(name, limit, taken, self.time.now, self.time.elapsed)
        suspect = next((each for each in leases if each.kind == "workflow" and each.claims > 1), None)
        if suspect is not None and len(leases) > 1:
            self.rows.apply(Change(release=[each for each in leases if each is not suspect]), name)
            leases = [suspect]
        for lease in leases:
            self._serve(owner, lease, out)
        self._settle(owner, out, dies)

    def hand_over(self, name: str, work: Name, status: str, output: Any, *, decide: bool, dies: bool = False) -> None:
        """What an owner's executor brings: it is recorded, whoever holds the row by now."""
        owner, out = self.owners[name], Change()
        hand = next(each for each in owner.hands.values() if each.lease.name == work)
        del owner.hands[hand.lease.token]
        run, call = self.runs[work[0]], self._call(work)
        status = "cancelled" if status == "failed" and hand.stopped else status
        again = status == "failed" and call.kind == "twice" and hand.attempt < ATTEMPTS
        path = call.attempt(hand.attempt) if again else call.result
        if second := path in run.paths:
            out.wake(work[0])
        elif not run.ended:
            self._append(run, path, status, output if status == "completed" else None, name)
            out.index[work[0]] = len(run.receipts)
            out.wake(work[0])
        out.finish.append(hand.lease)
        woken = bool(out.offer)
        if again:
            out.offer.append((work, "step", self.time.now + RETRY_SECONDS))
        if decide and woken and not second and work[0] in owner.bodies:
            del out.offer[0]  # the body is at hand: it decides now, instead of being queued
            self._advance(owner, work[0], out)
        self._settle(owner, out, dies)

    def heartbeat(self, name: str) -> dict[Name, str]:
        owner = self.owners[name]
        answers = self.rows.renew([hand.lease for hand in owner.hands.values()], name, self.time.elapsed)
        for hand in owner.hands.values():
            hand.stopped = hand.stopped or answers[hand.lease.name] == "withdrawn"
        return answers

    def sweep(self, name: str) -> None:
        """Runs whose news stand in git only are queued, and cancelled ones that are stuck may end."""
        self.look()
        freed = [run_id for run_id in self.rows.stuck if self.runs[run_id].cancelled]
        change = Change(unstuck=freed)
        for run_id in freed:
            change.wake(run_id)
        self._settle(self.owners[name], change, dies=False)

    def crash(self, name: str) -> None:
        self.owners[name] = Owner(name)
        self.rows.held.pop(name, None)

    def _settle(self, owner: Owner, change: Change, dies: bool) -> None:
        """The queue hears of it, unless the process dies when git has heard and the queue has not."""
        if dies:
            self.crash(owner.name)
        else:
            self._apply(change, owner.name)

    def _call(self, work: Name) -> Call:
        return next(call for stage in calls_of(self.plans[work[0]]) for call in stage if call.key == work[1])

    # -- inside: deciding ------------------------------------------------------------------------------------

    def _serve(self, owner: Owner, lease: Lease, out: Change) -> None:
        run_id, key = lease.name
        out.finish.append(lease)
        if lease.kind == "step":
            self._serve_call(owner, lease, out)
        elif lease.kind == "workflow" and lease.claims > MAX_LOSSES:
            out.wake(run_id)  # a probe says that it is not this run that ends processes
        elif lease.kind == "workflow" and self._is_anothers(owner, run_id):
            out.offer.append((lease.name, "workflow", self.time.now + PUT_OFF_SECONDS))
        elif lease.kind == "workflow":
            self._advance(owner, run_id, out)
        elif self._body(owner, run_id, out) is None:
            pass
        elif key == END:
            owner.leave_by[run_id] = self.time.now
            out.wake(run_id)
        elif key.removeprefix(EXPIRY) in self.runs[run_id].open_questions():
            self._append(self.runs[run_id], f"reviews/{key.removeprefix(EXPIRY)}/response.json", "expired")
            out.index[run_id] = len(self.runs[run_id].receipts)
            out.wake(run_id)

    def _is_anothers(self, owner: Owner, run_id: str) -> bool:
        """Whether another owner may execute what the queue does not know of: the one call that it holds is answered."""
        calls = [(key, row) for key, row in self.rows.of(run_id) if row.kind not in ("workflow", "timer")]
        if len(calls) != 1:
            return False
        ((key, row),) = calls
        theirs = row.standing(self.time.elapsed) == "leased" and row.holder != owner.name
        return theirs and self._call((run_id, key)).result in self.runs[run_id].paths

    def _serve_call(self, owner: Owner, lease: Lease, out: Change) -> None:
        run_id, call = lease.name[0], self._call(lease.name)
        if lease.claims > 1 and call.result in self.runs[run_id].paths:
            out.wake(run_id)
            return
        thought = self._body(owner, run_id, out)
        if thought is None:
            return
        if call not in thought.open:
            if thought.end is not None:
                out.wake(run_id)
        elif lease.lost >= MAX_LOSSES:
            out.stuck.append(run_id)
            out.offer.append((lease.name, "step", 0.0))
        else:
            out.finish.remove(lease)
            made = sum(call.attempt(number) in self.runs[run_id].paths for number in range(1, ATTEMPTS))
            known = owner.takes_over(lease)
            if known is not None:
                out.release.append(known.lease)
            owner.hands[lease.token] = Hand(lease, made + 1 if known is None else known.attempt)

    def _body(self, owner: Owner, run_id: str, out: Change) -> Thought | None:
        """What the body wants now; None for a run that is over, of which nothing is left behind."""
        run = self.runs[run_id]
        if run.ended:
            owner.drop(run_id)
            owner.stop(run_id)
            self._clear_up(run_id, out)
            out.index[run_id] = len(run.receipts)
            return None
        owner.bodies.setdefault(run_id, Body(len(run.receipts)))
        return think(run.plan, run.receipts)

    def _advance(self, owner: Owner, run_id: str, out: Change) -> None:
        thought = self._body(owner, run_id, out)
        if thought is None:
            return
        run = self.runs[run_id]
        for call in thought.open:
            if call.is_question and call.request not in run.paths:
                self._append(run, call.request, "requested", at=self.time.now)
        body = owner.bodies[run_id]
        if thought.dropped and not body.gave_up:
            body.gave_up = True
            heard = any(each.status == "cancel" for each in run.receipts[body.seen :])
            for call in thought.dropped if heard else thought.given_up:
                self._give_up(owner, run_id, call, out)
        if thought.end is not None:
            self._end(owner, run_id, thought, out)
        else:
            self._queue(body, run_id, thought.open, out)
        out.index[run_id] = len(run.receipts)

    def _queue(self, body: Body, run_id: str, wanted: Sequence[Call], out: Change) -> None:
        run = self.runs[run_id]
        out.offer += self._wanted(run_id, [call for call in wanted if call.key not in body.offered])
        closed = [each for each in run.receipts[body.seen :] if each.path.endswith("/response.json")]
        out.withdraw += [(run_id, EXPIRY + each.path.split("/")[1]) for each in closed]
        body.offered.update(call.key for call in wanted)
        body.seen = len(run.receipts)

    def _wanted(self, run_id: str, calls: Iterable[Call]) -> Iterator[tuple[Name, str, float]]:
        for call in calls:
            if call.kind == "soon":
                due = self.runs[run_id].paths[call.request].at + ANSWER_SECONDS
                yield (run_id, EXPIRY + call.key), "timer", due
            elif not call.is_question:
                yield (run_id, call.key), "step", 0.0

    def _give_up(self, owner: Owner, run_id: str, call: Call, out: Change) -> None:
        run = self.runs[run_id]
        if call.request in run.paths and call.result not in run.paths:
            self._append(run, call.result, "withdrawn")
        out.withdraw += [(run_id, call.key), (run_id, EXPIRY + call.key)]
        owner.stop(run_id, call.key)

    def _end(self, owner: Owner, run_id: str, thought: Thought, out: Change) -> None:
        run = self.runs[run_id]
        at_work = {
            key for key, row in self.rows.of(run_id) if row.standing(self.time.elapsed) in ("leased", "withdrawn")
        }
        if any(call.key in at_work for call in thought.given_up if not call.is_question):
            if run_id not in owner.leave_by:
                owner.leave_by[run_id] = self.time.now + GRACE_SECONDS
                out.offer.append(((run_id, END), "timer", owner.leave_by[run_id]))
            if self.time.now < owner.leave_by[run_id]:
                return
        assert thought.end is not None
        self._append(run, "result.json", thought.end, thought.output)
        run.ended_at = self.time.elapsed
        owner.drop(run_id)
        self._clear_up(run_id, out)

    def _clear_up(self, run_id: str, out: Change) -> None:
        out.withdraw += [(run_id, key) for key, row in self.rows.of(run_id) if row.kind != "workflow"]
