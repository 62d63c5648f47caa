// Entry point @polygrad/core/testing: lists what the package exports.
