"""What an upstream needs to run: its recipe, and packages layered over the Python that smith itself runs in."""
