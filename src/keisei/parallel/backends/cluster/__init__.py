"""Workers on several machines, as actors of a Ray cluster. Nothing here is imported unless ``backend: ray`` is used."""
