"""What pages send and read: bodies, rows of both protocols, ids and values."""
