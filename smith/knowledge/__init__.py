"""Knowledge that is measured: cards, the evidence behind them, the gate of pull requests, search and retrieval."""
