// written before promises

function readTemperature(sensor, callback) {
  setTimeout(function () {
    if (sensor === 'broken') {
      callback(new Error('sensor does not answer'));
    } else {
      callback(null, { sensor: sensor, celsius: sensor.length * 3.5 });
    }
  }, 5);
}

module.exports = readTemperature;
