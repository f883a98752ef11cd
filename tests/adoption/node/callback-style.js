module.exports = function (a, b, callback) {
  setTimeout(() => callback(null, a + b), 1);
};
