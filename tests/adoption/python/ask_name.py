# my first program :)
name = input("What is your name? ")
age = int(input("How old are you? "))
print("Hi " + name + ", in ten years you will be", age + 10)
