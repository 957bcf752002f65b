"""The version of the package, which stands in pyproject.toml alone."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__"]

try:
    __version__ = version("pysolvers")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"
