// Command line entry of the bench app.
