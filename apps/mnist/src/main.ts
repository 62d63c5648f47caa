// Command line entry of the mnist app.
process.stderr.write('The mnist app is not written yet.\n');
process.exitCode = 2;
