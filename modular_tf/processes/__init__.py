"""What is known of processes in general."""
