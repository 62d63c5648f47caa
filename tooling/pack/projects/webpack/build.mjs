// A page as webpack builds it: no error, and no warning but those about sizes.
import webpack from 'webpack';

webpack({ mode: 'production', entry: './main.js', target: 'web', performance: { hints: false } }, (error, stats) => {
  if (error) throw error;
  const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
  const found = [...errors, ...warnings].map(({ moduleName, message }) => `${moduleName ?? ''}: ${message}`);
  for (const text of found.filter((text) => !text.includes('performance recommendations'))) {
    console.error(text);
    process.exitCode = 1;
  }
});
