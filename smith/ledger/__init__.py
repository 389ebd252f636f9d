"""The ledger: what may be spent, what is held, what was spent; and what a model's call costs."""

from smith.ledger.amounts import Amounts, Limits
from smith.ledger.holds import Balance, Hold, State
from smith.ledger.ledger import Ledger

__all__ = ["Amounts", "Balance", "Hold", "Ledger", "Limits", "State"]
