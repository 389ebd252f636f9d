"""Exchange: bundles, candidates and submissions in the formats of other tools, and back."""
