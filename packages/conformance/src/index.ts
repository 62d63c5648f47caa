// Entry point @polygrad/conformance: lists what the package exports.
