// Entry point @polygrad/core/engine: lists what the package exports.
