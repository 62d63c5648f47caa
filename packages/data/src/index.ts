// Entry point @polygrad/data: lists what the package exports.
