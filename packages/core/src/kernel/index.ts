// Entry point @polygrad/core/kernel: lists what the package exports.
