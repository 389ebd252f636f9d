"""What calls are made with, and whether results agree: numbers in numpy, outside of every sandbox, no torch."""
