# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Extracts the matmuls of a module into a module."""
import re

LINEAR = re.compile(r"= nn\.linear .*?( bias .*?)?: .*?tensor<([\dx]+)xf32>, tensor<([\dx]+)xf32> -> tensor<([\dx]+)xf32>")
CALL = re.compile(r"(?:func\.)?call @(\w+)\(")
FUNCTION = re.compile(r"func\.func (?:private )?@(\w+)\(")


def floor(text):
    """Returns (module, inputs). The module has every nn.linear of every call, in order, with its own weights. Each
    reads the result of an earlier nn.linear of the same call if the shape fits, else an input of the program. Every
    value without a use is a result, so that nothing can be eliminated. `inputs` has the inputs' names and shapes."""
    functions, at = {}, None
    for line in text.splitlines():
        if match := FUNCTION.search(line):
            at = functions.setdefault(match[1], [])
        elif match := LINEAR.search(line):
            at.append((match[2], match[3], match[4], bool(match[1])))
        elif match := CALL.search(line):
            at.append(match[1])

    inputs, body, results, count = {}, [], [], 0

    def emit(name):
        nonlocal count
        made, unread = {}, {}  # shape -> value
        for entry in functions[name]:
            if isinstance(entry, str):
                emit(entry)
                continue
            source, weight, result, bias = entry
            if source in made:
                value = made[source]
                unread.pop(value, None)
            else:
                value = f"%in_{inputs.setdefault(source, len(inputs))}"
            body.append(f'%w{count} = nn.parameter "w{count}" : tensor<{weight}xf32>')
            suffix = ""
            if bias:
                rows = weight.split("x")[0]
                body.append(f'%b{count} = nn.parameter "b{count}" : tensor<{rows}xf32>')
                suffix = f" bias %b{count} : tensor<{rows}xf32>"
            body.append(f"%v{count} = nn.linear {value}, %w{count}{suffix} : tensor<{source}xf32>, tensor<{weight}xf32> -> tensor<{result}xf32>")
            made[result] = f"%v{count}"
            unread[f"%v{count}"] = result
            count += 1
        results.extend(unread.items())

    emit("main")
    arguments = ", ".join(f'%in_{i}: tensor<{shape}xf32> {{nn.name = "in_{i}"}}' for shape, i in inputs.items())
    types = ", ".join(f'tensor<{shape}xf32> {{nn.name = "out_{i}"}}' for i, (_, shape) in enumerate(results))
    returned = ", ".join(value for value, _ in results), ", ".join(f"tensor<{shape}xf32>" for _, shape in results)
    lines = "\n".join("  " + line for line in body)
    module = f"func.func @main({arguments}) -> ({types}) attributes {{nn.entry}} {{\n{lines}\n  return {returned[0]} : {returned[1]}\n}}\n"
    return module, {f"in_{i}": [int(n) for n in shape.split("x")] for shape, i in inputs.items()}
