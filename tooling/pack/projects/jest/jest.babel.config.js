// Babel makes CommonJS of the tests. The packages are ES modules, which CommonJS cannot require: it has to translate them, too.
export default {
  testEnvironment: 'node',
  transformIgnorePatterns: ['/node_modules/(?!@polygrad/)'],
  cacheDirectory: 'cache',
};
