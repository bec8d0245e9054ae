"""Images, files and audio in results and questions: where each of them leaves on a route."""
