"""Common ground: what every process of the gateway needs and no service owns."""
