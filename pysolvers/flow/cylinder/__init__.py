"""The flow around a square cylinder in a channel."""
