"""What Keisei shows to people and gives to other programs: charts, the USI engine, networks as ONNX."""
