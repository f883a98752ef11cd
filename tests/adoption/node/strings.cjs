function reverse(text) {
  return [...text].reverse().join('');
}

function repeat(text, times = 2) {
  return text.repeat(times);
}

module.exports = { reverse, repeat };
module.exports.__tools__ = ['reverse', 'repeat'];
