"""The package's version, which the wheel and the helper in it carry, too."""

__version__ = "0.1.0"
