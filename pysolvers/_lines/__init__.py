"""Direct solves: what stands between the functions of users and a backend."""
