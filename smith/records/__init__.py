"""The values that flow through smith: frozen, unknown keys forbidden, versioned, exportable as JSON Schema."""
