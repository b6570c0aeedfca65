"""What a process may use of the machine: cores, memory and threads."""
