"""A run's report as one HTML file that needs no network and runs no script."""
