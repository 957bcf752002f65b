"""Linear recurrences."""

from .calls import linear_recurrence

__all__ = ["linear_recurrence"]
