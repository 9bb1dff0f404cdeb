"""What is known of servers and models before one is asked, and of mistakes in their names."""
