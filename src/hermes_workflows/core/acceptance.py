"""Changed requests that an operator lets recorded answers stand for (SEMANTICS §3, the third way out)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .calls import AnyCall
    from .receipts import Receipt


class Accepted:
    """Pairs of fingerprints that count as one, each for one key: what was recorded, and what the code asks now."""

    def __init__(self) -> None:
        self._pairs: set[tuple[str, str, str]] = set()

    def learn(self, receipt: Receipt) -> None:
        """Take over what an `accept` note says; any other note says nothing here."""
        if receipt.kind == "control" and receipt.status == "accept":
            for each in receipt.request["accepted"]:
                self.add(each["key"], each["recorded"], each["present"])

    def add(self, key: str, recorded: str, present: str) -> None:
        self._pairs.add((key, recorded, present))

    def same(self, receipt: Receipt, call: AnyCall) -> bool:
        """Whether a receipt is about the request that the present code makes."""
        return call.fingerprint == receipt.fingerprint or (
            (call.key, receipt.fingerprint or "", call.fingerprint) in self._pairs
        )


def changed(receipt: Receipt, call: AnyCall | None) -> dict[str, Any] | None:
    """What there is to accept: the same call with another request; None when more than the request differs."""
    if call is None or call.kind != receipt.kind or not receipt.fingerprint or call.fingerprint == receipt.fingerprint:
        return None
    return {"key": call.key, "kind": call.kind, "recorded": receipt.fingerprint, "present": call.fingerprint}
