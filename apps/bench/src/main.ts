// Command line entry of the bench app.
process.stderr.write('The bench app is not written yet.\n');
process.exitCode = 2;
