"""Reports: one document that terminal and JSON are both made from."""
