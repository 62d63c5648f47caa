// Entry point @polygrad/nn: lists what the package exports.
