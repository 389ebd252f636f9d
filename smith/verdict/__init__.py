"""The rules: from recorded facts to a verdict, and a receipt's decision repeated.

Pure functions of records. Validation decides by them while it runs, and whoever holds a receipt can decide again.
"""
