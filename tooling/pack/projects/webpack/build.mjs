// A page as webpack builds it: no error, and no warning but those about sizes. Making it small is what takes long, and says nothing more.
import webpack from 'webpack';

const optimization = { minimize: false };
const options = { mode: 'production', entry: './main.js', target: 'web', performance: { hints: false }, optimization };
webpack(options, (error, stats) => {
  if (error) throw error;
  const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
  const found = [...errors, ...warnings].map(({ moduleName, message }) => `${moduleName ?? ''}: ${message}`);
  for (const text of found.filter((text) => !text.includes('performance recommendations'))) {
    console.error(text);
    process.exitCode = 1;
  }
});
