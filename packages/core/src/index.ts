// Entry point @polygrad/core: lists what the package exports.
