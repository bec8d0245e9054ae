"""What a signature can declare: tools in, calls out, results back."""
