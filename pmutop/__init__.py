"""pmutop: a top that says what every process is stuck on."""

__version__ = "0.1.0"
