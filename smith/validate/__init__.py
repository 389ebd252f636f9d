"""Validation: does a bundle's test selection tell right from wrong, here, every time?"""
