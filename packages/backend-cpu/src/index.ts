// Entry point @polygrad/backend-cpu: lists what the package exports.
