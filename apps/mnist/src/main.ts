// Command line entry of the mnist app.
