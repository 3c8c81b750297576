"""Sums of what agents consumed: per call, per run, per workflow; and how they are told.

Light on purpose: the fast `status` imports this.
"""

from __future__ import annotations

from collections.abc import Mapping

Sum = Mapping[str, float]

# Calls beyond these share one line, so that the row of a run with ten thousand calls stays small.
TOLD_CALLS = 50
# No key can be this: components of keys are ASCII.
OTHERS = "…"


def added(total: Sum, used: Sum) -> Sum:
    """Ten decimals: a sum must not depend on the order of addition in the digits that are shown."""
    return {name: round(total.get(name, 0) + used.get(name, 0), 10) for name in {**total, **used}}


def added_for(totals: Mapping[str, Sum], key: str, used: Sum) -> Mapping[str, Sum]:
    """The same for one call among others; the first ones have a line of their own."""
    name = key if key in totals or len(totals) < TOLD_CALLS else OTHERS
    return {**totals, name: added(totals.get(name, {}), used)}


def told(used: Sum) -> str:
    """`812 tokens in, 96 out, 0.0031 USD`; empty when nothing was consumed."""
    if not any(used.values()):
        return ""
    tokens = f"{used.get('input_tokens', 0):,.0f} tokens in, {used.get('output_tokens', 0):,.0f} out"
    return f"{tokens}, {used.get('cost_usd', 0):.4f} USD"
