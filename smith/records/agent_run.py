"""What a receipt says of an agent's work with a model."""

from __future__ import annotations

from pydantic import Field

from smith.records.base import Document
from smith.records.shown import Told


class AgentRun(Document):
    """``agent.json`` of an attempt: what ran, with what settings, and what its calls came to."""

    agent: str
    model: str
    dialect: str
    about: dict[str, str] = {}
    """Versions, digests of prompts and settings, as the agent says them."""
    sandbox: str
    device: str
    timeout_s: float
    max_output_tokens: int
    price: str
    """Who says what the model costs."""
    calls: int
    sent: int
    """Requests to the endpoint, those that were sent again among them."""
    uncertain: int
    """Of these, those of which nobody knows what they cost: their ceilings stay held."""
    refused: int
    """Calls for which too little was left."""
    faults: int
    """Calls that the endpoint did not answer."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    micro_usd: int
    """Charged to the attempt so far, earlier tries included."""
    seconds: float
    knowledge: Told | None = Field(default=None, exclude_if=lambda told: told is None)
    """Cards that stood in the instruction, by their digests; left out in a run that shows nothing."""
