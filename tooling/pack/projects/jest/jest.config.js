export default { testEnvironment: 'node', transform: {}, cacheDirectory: 'cache' };
