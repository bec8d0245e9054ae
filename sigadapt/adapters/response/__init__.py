"""Response -> Reading -> Choice: read bodies and streams, and type their calls."""
