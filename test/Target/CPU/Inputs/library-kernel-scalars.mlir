rt.kernel @norm(tensor<?x8xf32>) -> tensor<?x8xf32> attributes {library_symbol = "my_norm", scalars = [4 : i64]}
rt.kernel @other(tensor<?x8xf32>) -> tensor<?x8xf32> attributes {library_symbol = "my_norm", scalars = [4.0 : f64]}
