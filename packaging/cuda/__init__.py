"""The compiled CUDA backend of pysolvers, which finds and imports it; nothing here is for users."""
